"""One number means one thing: these bytes, from these patches, that passed these tests."""
