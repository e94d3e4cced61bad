"""The EXL3 checkpoint format, its slicing for tensor parallelism, its verification.

Stands alone: no torch, no vLLM. Files are read and written as bytes.
"""
