"""Files for other tools and for people."""
