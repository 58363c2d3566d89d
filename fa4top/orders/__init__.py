"""What is asked for, as data: orders, jobs, shapes, and what a person types for them."""
