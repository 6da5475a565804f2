"""Names the gate that keeps requests out of a vLLM or SGLang engine, with proof."""

__version__ = "0.1.0"
