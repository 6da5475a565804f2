"""The files of the page at `/`; diagnoser/service/api/page.py serves them. Documented in docs/page.md."""
