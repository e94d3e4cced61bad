"""The object store: trees, blobs, three-way merges. The only room that runs git plumbing."""
