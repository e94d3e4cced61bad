"""Builders and judges that tests share."""
