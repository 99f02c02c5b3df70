"""The frame around every page: its side bar, the look of the pages, and the search for
everything."""
