"""Guards proto/stride: what a client was built from keeps working, and the style rules we promise hold."""
