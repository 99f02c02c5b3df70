"""The frame around every page: the side bar, the look of the pages, and the search across
everything."""
