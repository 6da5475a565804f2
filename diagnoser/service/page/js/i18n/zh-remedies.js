// 处理办法的效果和代价（rules/remedies/<id>.yaml 的 effect 和 side_effect）。动作和参数来自 /static/words/zh.json。

const table = {
  bound_length: ["每个请求占用更少、时间更短", "长请求被拒绝或截断"],
  cheap_recompute: ["被抢占的请求改为加载，不再重算", "占用带宽；等待加载期间占住 L1；不增加槽位"],
  dump_stacks: ["指出卡在哪里，便于提交缺陷", "停顿几毫秒"],
  faster_tier: ["加载时间短于它省下的预填充", "容量变小"],
  fp8_kv: ["token 容量约为两倍（稀疏 MLA 模型 1.6 到 1.8 倍）", "需检查精度；后端可能不支持；旧类型的缓存作废"],
  give_facts: ["之后能区分槽位和预填充", "无"],
  grammar_cache: ["请求立即就绪", "输出约束变宽"],
  load_threshold: ["短前缀直接计算，不再等待", "预填充增多"],
  look_outside: ["指出慢的是哪一环", "无"],
  lora_slots: ["适配器不必轮流", "占用池的显存"],
  lower_concurrency: ["重复计算减少，完成的请求更多", "队列变长，峰值吞吐降低"],
  lower_reservation: ["实际放得下的请求立即准入", "输出真的很长时会有更多撤回"],
  more_memory: ["同一块 GPU 上有更多 token", "激活和计算图空间变小；高峰时可能显存不足"],
  more_replicas: ["更大的池和更多算力", "需要硬件；前缀局部性被拆散；MLA 不因 TP 而变小"],
  pd_balance: ["交接队列排空", "需要硬件"],
  raise_budget: ["提示词用更少的步数完成", "正在解码的请求 token 间隔变长"],
  raise_slots: ["KV 空间允许时同时准入更多", "所有请求每步变慢；下一个关口可能是 KV 空间"],
  restart_engine: ["以空池重新开始", "运行中的请求丢失，缓存变冷"],
  reuse_prefixes: ["每个命中的 token 都少算一次；这里主机缓存才是对症的办法", "主机内存和带宽"],
  separate_long: ["队首的超长请求不再堵住短请求", "两个池要分别配置大小"],
  shed_load: ["少数请求报错，换来所有人不必等几分钟", "客户端收到 503，需退避；SGLang 在 P/D 模式下忽略该参数"],
  shorter_max_tokens: ["队首自身的预留全额减少，而不是按比例", "长回答被截断"],
  split_roles: ["两端按各自的工作配置", "传输开销，两个池要分别配置大小"],
};

export const remedies = Object.fromEntries(
  Object.entries(table).flatMap(([id, [effect, side]]) => [
    [`effect_${id}`, effect],
    [`side_${id}`, side],
  ]),
);
