"""Who is told of a verdict, and in which words."""
