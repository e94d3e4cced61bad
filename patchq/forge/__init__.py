"""GitHub by PyGithub: queries, retries, rate limits. The only room that talks to it."""
