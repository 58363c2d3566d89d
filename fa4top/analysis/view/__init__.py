"""Records folded into what a person sees: snapshots, tables, exports."""
