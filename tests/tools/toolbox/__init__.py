"""Rules of the contract and the toolbox: pure Python, no database."""
