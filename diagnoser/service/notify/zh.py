"""Chinese for messages: verdicts by their id in rules/verdicts.yaml, remedies by their id in rules/remedies.

A rule of the user's own has no entry here and keeps its own words.
"""

from __future__ import annotations

from collections.abc import Mapping

HEADLINES: Mapping[str, str] = {
    "unreachable": "无法访问",
    "bad_series": "未知：指标中有不可能出现的数值",
    "no_queue_metric": "未知：页面没有给出运行数和排队数",
    "leak": "泄漏：没有请求在运行，KV 空间却仍被占用",
    "one_page": "未知：只有一次采样，无法判断",
    "stalled": "停滞：引擎没有任何进展",
    "l2_transfer": "L2 传输受限：请求在等待从 L2 拷回数据",
    "external": "外部等待：请求停在 KV 池以外的环节",
    "slots": "槽位受限：请求槽位已全部占用",
    "prefill": "预填充受限：每一步的 token 预算都用在提示词上",
    "l1_preempting": "L1 受限（抢占），{l2}",
    "l1_reservation": "L1 受限（预留），{l2}",
    "l1_admission": "L1 受限（准入），{l2}",
    "unexplained": "未知：请求在排队，但等的不是 KV 空间",
    "no_attribution": "未知：无法跟踪队列",
    "mixed": "未知：排队不能归因于任何单一关口",
    "idle": "无瓶颈：空闲",
    "healthy": "无瓶颈",
}

L2: Mapping[str, str] = {
    "absent": "没有 L2",
    "governs_admission": "L2 决定准入",
    "idle_space": "L2 空闲",
    "idle_traffic": "L2 没有流量",
    "full_normal": "L2 已满（正常）",
    "too_small": "L2 太小",
    "slow": "L2 太慢",
    "broken": "L2 故障",
    "unknown": "L2 状态不可观测",
}

REMEDIES: Mapping[str, str] = {
    "bound_length": "限制提示词和输出的长度",
    "cheap_recompute": "让被抢占的请求能低成本恢复",
    "dump_stacks": "保留现场：导出调度器的调用栈",
    "faster_tier": "换用更快的一级缓存，或者这种负载不用它",
    "fp8_kv": "用 8 位存储 KV",
    "give_facts": "补充页面上没有的配置",
    "grammar_cache": "把语法编译移出关键路径",
    "load_threshold": "只加载划算的部分",
    "look_outside": "查明队列停在哪个环节",
    "lora_slots": "增加 LoRA 适配器槽位",
    "lower_concurrency": "降低并发，避免请求被抢占",
    "lower_reservation": "减少为输出预留的空间",
    "more_memory": "给 KV 池更多显存",
    "more_replicas": "增加副本，或分布到更多设备",
    "pd_balance": "平衡预填充端和解码端",
    "raise_budget": "每一步给提示词更多 token 预算",
    "raise_slots": "提高请求槽位上限",
    "restart_engine": "重启引擎，尽量先排空请求",
    "reuse_prefixes": "避免重复预填充：共享并保留更多前缀",
    "separate_long": "把长提示词路由到单独的引擎",
    "shed_load": "立即限流，减少新到请求",
    "shorter_max_tokens": "让客户端按实际需要设置 max_tokens",
    "split_roles": "把预填充和解码分开",
}

FLAGS: Mapping[str, Mapping[str, str]] = {
    "bound_length": {
        "vllm": "--max-model-len N，请求里的 max_tokens",
        "sglang": "--context-length N，请求里的 max_new_tokens",
    },
    "dump_stacks": {"any": "对引擎核心或调度器进程执行 py-spy dump --pid"},
    "faster_tier": {
        "vllm": "用锁页的本地主机内存代替文件或网络存储",
        "sglang": "--hicache-io-backend kernel，--hicache-mem-layout page_first",
    },
    "grammar_cache": {"any": "减少不同的 schema，简化语法，或换用其他结构化输出后端"},
    "load_threshold": {"vllm": "在连接器配置中提高外部命中的门槛"},
    "look_outside": {
        "vllm": "vllm:num_requests_kv_fetch_by_stage，vllm:lora_requests_info，客户端的 response_format",
        "sglang": "sglang:num_grammar_queue_reqs，sglang:lora_pool_utilization，P/D 队列",
    },
    "lower_concurrency": {
        "vllm": "--max-num-seqs N（低于平常的运行数），或 --watermark 0.02",
        "sglang": "--max-running-requests N，或更高的 --schedule-conservativeness",
    },
    "lower_reservation": {
        "sglang": "--schedule-conservativeness 0.3，或 SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION=512",
    },
    "more_memory": {"vllm": "--gpu-memory-utilization 0.95，或 --kv-cache-memory-bytes"},
    "more_replicas": {
        "vllm": "--tensor-parallel-size 至多等于 KV 头数，之后用 --decode-context-parallel-size，"
        "或在按最少 KV 选路的路由器后面加副本",
        "sglang": "--tp 至多等于 KV 头数，--dp-size，或在感知缓存的路由器后面加副本",
    },
    "pd_balance": {"any": "增加解码引擎，或使用更快的两端链路"},
    "raise_slots": {"sglang": "--max-running-requests N（状态模型：更大的 mamba 缓存）"},
    "restart_engine": {"any": "重启进程，保留日志"},
    "reuse_prefixes": {
        "vllm": "打开前缀缓存，--kv-offloading-size N (GiB) --kv-offloading-backend native，感知前缀的路由器",
        "sglang": "打开 radix cache，--enable-hierarchical-cache，感知缓存的路由器",
    },
    "separate_long": {"any": "按提示词长度设置路由规则"},
    "shed_load": {
        "vllm": "--max-num-queued-reqs N（0.29 起），或在网关限流",
        "sglang": "--max-queued-requests N，或在网关限流",
    },
    "shorter_max_tokens": {"sglang": "请求里的 max_new_tokens"},
    "split_roles": {"vllm": "配置 KV 连接器，kv_role 为 kv_producer / kv_consumer"},
}
"""Flags that hold words, by remedy and family; the others are the same in every language."""

PHRASES: Mapping[str, str] = {
    "share_l1": "KV 空间在时间窗 {share} 的时间里不足",
    "share_slots": "槽位在时间窗 {share} 的时间里占满",
    "share_prefill": "预填充在时间窗 {share} 的时间里饱和",
    "share_external": "请求在时间窗 {share} 的时间里停在池外",
    "share_l2_transfer": "时间窗 {share} 的时间在等 L2 拷贝",
    "share_stalled": "时间窗 {share} 的时间没有任何进展",
    "waiting": "最多 {max} 个请求排队（最后 {last} 个）",
    "used": "KV 池占用最高 {used}",
    "ttft": "TTFT P99 在 ({low}, {high}]",
    "preempted": "每完成一个请求有 {rate} 次抢占",
    "do": "处理：{action}：{flag}",
    "resolved": "已恢复",
    "after": "持续 {time}",
    "now": "现在：{headline}",
    "gone": "不再监控该引擎",
    "was": "此前：{headline}",
    "critical": "严重",
    "warning": "警告",
    "info": "提示",
    "rank": "rank {rank}",
    "many": "{firing} 个引擎受限，{resolved} 个已恢复",
    "more": "还有 {count} 个",
    "digest": "限流合并：{count} 条消息",
    "answer": "告警 {name}（{status}）的诊断",
    "worst": "告警涉及 {named} 个引擎 rank，这里是当前最严重的 {shown} 个",
    "newest": "那段时间的页面已不再保留，以下为最新诊断：{engines}",
    "firing": "触发",
    "ended": "已恢复",
    "attempt": "（第 {attempt} 次发送，可能重复）",
    "colon": "：",
    "join": "；",
}
"""Parts of a message. The English ones are in words.py."""

UNITS: Mapping[str, str] = {"ms": "毫秒", "s": "秒", "min": "分钟", "h": "小时", "more": "无上限"}
"""Of times, as diagnoser/units.py writes them."""
