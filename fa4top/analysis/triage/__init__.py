"""The method's six steps: rules and what they rule out."""
