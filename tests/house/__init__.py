"""The figures of the house: the structure of the code, the distances for a reader, and sizes. They
judge nothing."""
