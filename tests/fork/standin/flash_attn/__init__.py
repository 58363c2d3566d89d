"""Stand-in for the fork's top package: empty."""
