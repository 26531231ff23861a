"""Pictures of trainings from logs that are made up."""

from __future__ import annotations

from typing import Any

from greenbatch.experiments.reports.curves import curve_plots, delay_plot, delay_words, sweep_plot

DELAYS = [{"kind": "none", "amount": 0.0}, {"kind": "releases", "amount": 1.0}, {"kind": "seconds", "amount": 300.0}]


def log(epochs: int, *, slope: float = 1.0, every: int = 2) -> list[dict[str, Any]]:
    """A log as the trainer writes it: a validation before the first epoch and at every second one."""
    lines: list[dict[str, Any]] = [{"epoch": 0, "validation": -5.0}]
    for epoch in range(1, epochs + 1):
        line = {"epoch": epoch, "return": slope * epoch, "kl": 0.001, "entropy": 2.0, "delays": [8 - epoch, epoch, 2]}
        lines.append(line | ({"validation": -5.0 + epoch} if epoch % every == 0 else {}))
    return [*lines, {"epoch": epochs, "done": True}]


def test_curves_show_what_all_seeds_have() -> None:
    pictures = {p.title: p for p in curve_plots({"a": [log(6), log(4, slope=3.0)], "b": [log(3)]}, "x")}
    assert list(pictures) == ["Return", "Validation", "KL divergence", "Entropy"]
    assert "a from 2 to 8 after 4 epochs; b from 1 to 3 after 3 epochs" in pictures["Return"].alt
    assert "a from -5 to -1 after 4 epochs" in pictures["Validation"].alt
    assert "band: lowest to highest seed" in pictures["Return"].caption
    assert "0.001" in pictures["KL divergence"].svg  # figures keep their digits
    assert curve_plots({"a": [[{"epoch": 1, "done": True}]]}) == []
    assert curve_plots({}) == []


def test_delays_over_a_training() -> None:
    drawn = delay_plot([log(4)], DELAYS, "a")
    assert drawn is not None
    assert "no delay 70 to 40%; 1 job ends 10 to 40%; 5 min 20 to 20%" in drawn.alt
    assert delay_plot([log(4)], DELAYS[:1], "a") is None
    assert delay_plot([log(4)], DELAYS[:2], "a") is None  # of another preset
    assert delay_plot([log(300)], DELAYS, "a") is not None
    assert [delay_words(d) for d in DELAYS] == ["no delay", "1 job ends", "5 min"]


def test_sweep_needs_two_factors() -> None:
    assert sweep_plot({"a": [(0.001, 5.0, 0.5)], "b": []}, "x") is None
    drawn = sweep_plot({"a": [(0.002, 4.0, 0.6), (0.001, 5.0, 0.5)]}, "x")
    assert drawn is not None
    assert "a at 0.001: 5, 50.0%" in drawn.alt
    assert "0.002" in drawn.svg
