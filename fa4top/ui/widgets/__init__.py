"""Widgets: one a file. They draw snapshots and keep no state that another viewer would need."""
