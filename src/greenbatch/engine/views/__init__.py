"""What a policy outside of the engine sees and answers: a state as a view, and a view as a state."""
