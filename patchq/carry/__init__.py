"""Carry a series onto a new base: fold, plan, proof, journal, sync."""
