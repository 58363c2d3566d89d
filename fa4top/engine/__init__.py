"""The process that owns workers, the GPU token and the session log."""
