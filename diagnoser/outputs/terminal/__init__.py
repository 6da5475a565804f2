"""Pieces of the text output. They need rich, so they are imported only when text is rendered."""
