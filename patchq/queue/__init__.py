"""Patches, headers and the series on disk: bytes in, typed values out, bytes back."""
