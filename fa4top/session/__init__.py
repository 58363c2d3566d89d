"""Session logs on disk: where they lie, how they are read, followed and replayed."""
