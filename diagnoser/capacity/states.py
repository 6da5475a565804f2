"""The recurrent state of a layer, from the fields of its family.

Shapes as in vllm/model_executor/layers/mamba/mamba_utils.py (MambaStateShapeCalculator, 0.32.0) and
sglang/srt/configs/mamba_utils.py (Mamba2StateShape, 0.5.23); both engines agree on them.
"""

from __future__ import annotations

from diagnoser.capacity.fields import Fields
from diagnoser.capacity.layers import State
from diagnoser.errors import CapacityError


def state_of(fields: Fields) -> State:
    """The state of one state layer of this model. Raises CapacityError when the family is not known."""
    for read in (_gated_delta_net, _kimi_delta, _mamba2, _nemotron, _mamba1, _short_convolution, _lightning):
        state = read(fields)
        if state is not None:
            return state
    raise CapacityError(
        f"{fields.name}: has state layers, but none of the fields linear_num_value_heads, linear_attn_config,"
        " mamba_n_heads, mamba_num_heads, mamba_d_state, conv_L_cache that give the size of the state"
    )


def _gated_delta_net(fields: Fields) -> State | None:
    values = fields.number("linear_num_value_heads")
    if values is None:
        return None
    why = "the gated delta net state"
    keys, key_dim = fields.need("linear_num_key_heads", why=why), fields.need("linear_key_head_dim", why=why)
    value_dim, kernel = fields.need("linear_value_head_dim", why=why), fields.need("linear_conv_kernel_dim", why=why)
    inner = values * value_dim
    return State(inner=inner, recurrent=inner * key_dim, kernel=kernel, groups=keys, group_dim=key_dim)


def _kimi_delta(fields: Fields) -> State | None:
    nested = fields.get("linear_attn_config")
    if not isinstance(nested, dict):
        return None
    part = Fields(f"{fields.name} linear_attn_config", nested, nested)
    heads, dim = part.need("num_heads", why="the KDA state"), part.need("head_dim", why="the KDA state")
    kernel = part.number("short_conv_kernel_size") or 4
    return State(inner=heads * dim, recurrent=heads * dim * dim, kernel=kernel, groups=heads, group_dim=dim)


def _mamba2(fields: Fields) -> State | None:
    heads = fields.number("mamba_n_heads")
    if heads is None:
        return None
    why = "the mamba2 state"
    dim, size = fields.need("mamba_d_head", why=why), fields.need("mamba_d_state", why=why)
    inner = fields.number("mamba_d_ssm") or heads * dim
    return State(
        inner=inner, recurrent=heads * dim * size, kernel=fields.need("mamba_d_conv", why=why),
        groups=fields.number("mamba_n_groups") or 1, group_dim=size,
    )


def _nemotron(fields: Fields) -> State | None:
    heads = fields.number("mamba_num_heads")
    if heads is None:
        return None
    why = "the mamba2 state"
    dim, size = fields.need("mamba_head_dim", why=why), fields.need("ssm_state_size", why=why)
    return State(
        inner=heads * dim, recurrent=heads * dim * size, kernel=fields.need("conv_kernel", why=why),
        groups=fields.need("n_groups", why=why), group_dim=size,
    )


def _mamba1(fields: Fields) -> State | None:
    size = fields.number("mamba_d_state")
    if size is None:
        return None
    why = "the mamba state"
    inner = fields.need("mamba_expand", why=why) * fields.need("hidden_size", why=why)
    return State(inner=inner, recurrent=inner * size, kernel=fields.need("mamba_d_conv", why=why))


def _short_convolution(fields: Fields) -> State | None:
    kernel = fields.number("conv_L_cache")
    if kernel is None:
        return None
    return State(inner=fields.need("hidden_size", why="the conv state"), recurrent=0, kernel=kernel)


def _lightning(fields: Fields) -> State | None:
    if not fields.model_type.startswith("minimax") or fields.get("attn_type_list", "layer_types") is None:
        return None
    heads, dim = fields.need("num_attention_heads", why="the state"), fields.need("head_dim", why="the state")
    return State(inner=0, recurrent=heads * dim * dim)
