"""The documents that are stored or handed from part to part."""
