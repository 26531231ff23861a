"""``greenbatch export``: write a trained model as one ONNX file."""

from __future__ import annotations

from pathlib import Path

from greenbatch.cli.flags import Switch
from greenbatch.errors import InputError, visible


def export(model: str, *, out: Path, force: Switch = False) -> None:
    """Write a trained model as an ONNX file, for programs other than greenbatch.

    Its inputs are the tables the model observes, valid rows only; its outputs are scores and the chosen row and delay.
    The metadata of the file describe the columns and their normalizers.

    Parameters
    ----------
    model
        The folder of a training or of a model, or PRESET@FOLDER.
    out
        The file to write, e.g. gas-marl.onnx; refused if it exists.
    force
        Replace the file if it exists.
    """
    _check(out, force=force)
    from greenbatch.models.find import named_model
    from greenbatch.models.model import load_model
    from greenbatch.models.network import graph_of

    folder = named_model(model)
    if out.resolve().parent == folder.resolve():
        problem = "is in the model's folder, which training replaces as a whole"
        raise InputError(problem, file=out, field="--out", fix="give a file elsewhere")
    from greenbatch.models.onnx_graph import load
    from greenbatch.storage import replace_file

    content = graph_of(load_model(folder))
    session = load(content)
    try:
        replace_file(out, content)
    except (OSError, ValueError) as error:
        problem = f"cannot be written: {getattr(error, 'strerror', None) or error}"
        raise InputError(problem, file=out, field="--out", fix="choose a file in a folder you may write to") from None
    for what, tensors in (("inputs", session.get_inputs()), ("outputs", session.get_outputs())):
        print(f"{what:8} " + ", ".join(f"{each.name} {_shape(each.shape)}" for each in tensors))
    print(f"written to {visible(str(out))} ({len(content):,} bytes)")


def _shape(lengths: list[str | int]) -> str:
    return "(" + ", ".join(map(str, lengths)) + ")"


def _check(out: Path, *, force: bool) -> None:
    """Check that a file can be written before doing any work."""
    from greenbatch.storage import sweep

    def refuse(problem: str, fix: str) -> InputError:
        return InputError(problem, file=out, field="--out", fix=fix)

    if not out.name or "\0" in str(out):
        raise refuse("is not a file name", "give the name of a file, e.g. model.onnx")
    try:
        if out.is_dir():
            raise refuse("is a folder", "give the name of a file, e.g. model.onnx")
        if not out.parent.is_dir():
            raise refuse("there is no such folder", "make the folder first")
        sweep(out)
        if (out.exists() or out.is_symlink()) and not force:
            raise refuse("exists", "give another file, or --force to replace it")
    except OSError as error:
        raise refuse(f"cannot be used: {error.strerror}", "choose a file in a folder you may write to") from None
