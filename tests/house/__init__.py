"""The figures of the house: the structure of the code, the distances for a reader, and sizes. No
figure is enforced."""
