"""Other libraries, each looked up when the program uses it."""
