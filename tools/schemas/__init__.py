"""JSON Schema in plain Python: building, reading, checking, cleaning and describing schemas."""
