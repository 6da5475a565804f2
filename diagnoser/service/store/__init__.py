"""Tables of the history file, one file a topic. Plain functions on a connection; diagnoser/service/history.py calls."""
