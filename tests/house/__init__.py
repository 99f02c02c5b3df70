"""The figures of the house: how the code is cut, how far a reader goes, how much there is. They judge nothing."""
