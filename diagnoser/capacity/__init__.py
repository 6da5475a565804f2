"""Capacity arithmetic: bytes a token, tokens of a pool, requests at once, for a model, an engine and a deployment.

    model = load_model(Path("config.json"))
    capacity = estimate(model, Deployment(tp=8), Budget(60 * 2**30), workload(Request(30_000, 2_000)))

A model is read once (config, shape); plan() gives the bytes of a deployment; make_pool() the pool of the engine;
estimate() all of it with the assumptions. Everything is frozen, nothing does I/O but load_model.
"""

from diagnoser.capacity.compare import Comparison, Hypothesis, compare, hypotheses_for
from diagnoser.capacity.config import load_model, model_from
from diagnoser.capacity.data import as_data
from diagnoser.capacity.deployment import Deployment
from diagnoser.capacity.estimate import Capacity, Concurrency, estimate, make_pool
from diagnoser.capacity.layers import Kind, Layer, Model, State
from diagnoser.capacity.memory import Budget, Gpu, budget
from diagnoser.capacity.plan import Plan, plan
from diagnoser.capacity.pool import Limit, Pool, Size, binding
from diagnoser.capacity.render import as_text
from diagnoser.capacity.reservation import Admission, Reservation, refusal_usage, reservation
from diagnoser.capacity.shape import Shape
from diagnoser.capacity.workload import Request, Workload, workload

__all__ = [
    "Admission", "Budget", "Capacity", "Comparison", "Concurrency", "Deployment", "Gpu", "Hypothesis", "Kind", "Layer",
    "Limit", "Model", "Plan", "Pool", "Request", "Reservation", "Shape", "Size", "State", "Workload", "as_data",
    "as_text", "binding", "budget", "compare", "estimate", "hypotheses_for", "load_model", "make_pool", "model_from",
    "plan", "refusal_usage", "reservation", "workload",
]
