"""What a learned policy observes: features, pairs of jobs and nodes, images, rewards; many simulations side by side."""
