"""The probes, a module for each thing that can be wrong; `patchq/smoke/catalog.py` lists them."""
