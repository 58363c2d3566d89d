"""Compiled code, read: listings, loops, roles, differences."""
