"""Calls as models write them into the text if no parser extracts them, and answers that only
mention such calls."""

CALLS = {
    "ReAct as JSON": '{"action": "data__searchRecords", "action_input": "cats"}',
    "mistral without its first token": 'data__searchRecords[ARGS]{"text": "cats"}',
    "hermes": '<tool_call>\n{"name": "data__searchRecords", "arguments": {"text": "a"}}\n</tool_call>',
    "hermes on one line": '<tool_call>{"name":"data__searchRecords","arguments":{"text":"a"}}</tool_call>',
    "hermes after prose": 'Let me look.\n\n<tool_call>\n{"name": "data__searchRecords", "arguments": {}}\n</tool_call>',
    "hermes after prose in one line": 'I look: <tool_call>{"name": "data__searchRecords", "arguments": {}}</tool_call>',
    "hermes and an invented result": (
        '<tool_call>\n{"name": "data__searchRecords", "arguments": {}}\n</tool_call>\nI found 12 records.'
    ),
    "hermes cut in the middle": '<tool_call>\n{"name": "data__searchRecords", "arguments": {"text": "a long te',
    "two hermes": (
        '<tool_call>\n{"name": "utility__now", "arguments": {}}\n</tool_call>\n'
        '<tool_call>\n{"name": "data__searchRecords", "arguments": {"text": "b"}}\n</tool_call>'
    ),
    "arguments first": '<tool_call>{"arguments": {"text": "a"}, "name": "data__searchRecords"}</tool_call>',
    "qwen coder": (
        "<tool_call>\n<function=data__searchRecords>\n<parameter=text>\na\n</parameter>\n</function>\n</tool_call>"
    ),
    "qwen coder without the outer tag": (
        "<function=data__searchRecords>\n<parameter=text>\na\n</parameter>\n</function>\n</tool_call>"
    ),
    "llama function tag": '<function=data__searchRecords>{"text": "a"}</function>',
    "groq failed generation": '<function=data__searchRecords{"text":"x"}</function>',
    "llama python tag": '<|python_tag|>{"name": "data__searchRecords", "parameters": {"text": "a"}}',
    "llama python tag, code": '<|python_tag|>data__searchRecords.call(text="a")',
    "llama bare": '{"name": "data__searchRecords", "parameters": {"text": "a"}}',
    "llama with a missing brace": (
        '{"type": "function", "function": {"name": "data__searchRecords", "parameters": {"text": "a"}}'
    ),
    "several separated by semicolons": (
        '{"name": "utility__now", "parameters": {}}; {"name": "data__searchRecords", "parameters": {"text": "a"}}'
    ),
    "pythonic": '[data__searchRecords(text="a"), utility__now()]',
    "pythonic without brackets": 'data__searchRecords(text="a (b)", limit=5)',
    "pythonic after prose": 'I will search for it.\n\ndata__searchRecords(text="a")',
    "pythonic in special tokens": '<|tool_call_start|>[data__searchRecords(text="a")]<|tool_call_end|>',
    "gemma code": '```tool_code\nprint(data__searchRecords(text="a"))\n```',
    "gemma code with a namespace": '```python\nresult = default_api.data__searchRecords(text="a")\n```',
    "gemma function": "<start_function_call>call:data__searchRecords{text:<escape>a<escape>}<end_function_call>",
    "gemma function without special tokens": "call:data__searchRecords{text:<escape>a<escape>}",
    "gemma 4": '<|tool_call>call:data__searchRecords{text:<|"|>a<|"|>}<tool_call|>',
    "mistral": '[TOOL_CALLS][{"name": "data__searchRecords", "arguments": {}}]',
    "mistral with a space": '[TOOL_CALLS] [{"name": "data__searchRecords", "arguments": {}, "id": "a1b2c3d4e"}]',
    "mistral compact": '[TOOL_CALLS]data__searchRecords[ARGS]{"text": "a"}',
    "mistral with an id": '[TOOL_CALLS]data__searchRecords[CALL_ID]a1b2c3d4e[ARGS]{"text": "a"}',
    "deepseek v3": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>data__searchRecords\n"  # noqa: RUF001
        '```json\n{"text": "a"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'  # noqa: RUF001
    ),
    "deepseek v3.1": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>data__searchRecords<｜tool▁sep｜>"  # noqa: RUF001
        '{"text": "a"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'  # noqa: RUF001
    ),
    "deepseek v3.2": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="data__searchRecords">\n'  # noqa: RUF001
        '<｜DSML｜parameter name="text" string="true">a</｜DSML｜parameter>\n</｜DSML｜invoke>'  # noqa: RUF001
    ),
    "kimi k2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.data__searchRecords:0<|tool_call_argument_begin|>"
        '{"text": "a"}<|tool_call_end|><|tool_calls_section_end|>'
    ),
    "kimi k2 without special tokens": 'functions.data__searchRecords:0{"text": "a"}',
    "kimi k3": (
        '<|open|>tools<|sep|>\n<|open|>call tool="data__searchRecords" index="1"<|sep|>\n'
        '<|open|>argument key="text" type="string"<|sep|>a<|close|>argument<|sep|>\n<|close|>call<|sep|>'
    ),
    "glm": (
        "<tool_call>data__searchRecords\n<arg_key>text</arg_key>\n<arg_value>a</arg_value>\n</tool_call>"
    ),
    "glm without params": "<tool_call>utility__now\n</tool_call>",
    "hunyuan": "<tool_calls>\n<tool_call>data__searchRecords<tool_sep>\n<arg_key>text</arg_key>\n</tool_call>",
    "minimax": (
        '<minimax:tool_call>\n<invoke name="data__searchRecords">\n<parameter name="text">a</parameter>\n</invoke>\n'
        "</minimax:tool_call>"
    ),
    "claude": (
        '<function_calls>\n<invoke name="data__searchRecords">\n<parameter name="text">a</parameter>\n</invoke>\n'
        "</function_calls>"
    ),
    "minicpm": '<function name="data__searchRecords"><param name="text">a</param></function>',
    "seed": "<seed:tool_call>\n<function=data__searchRecords>\n<parameter=text>a</parameter>\n</function>",
    "step": (
        "<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜>"  # noqa: RUF001
        '<steptml:invoke name="data__searchRecords">\n<steptml:parameter name="text">a</steptml:parameter>'
    ),
    "harmony": (
        '<|channel|>commentary to=functions.data__searchRecords <|constrain|>json<|message|>{"text": "a"}<|call|>'
    ),
    "harmony with its start": (
        "<|start|>assistant<|channel|>commentary to=functions.data__searchRecords <|constrain|>json<|message|>{}"
    ),
    "granite": '<|tool_call|>[{"name": "data__searchRecords", "arguments": {"text": "a"}}]',
    "granite 20b": '<function_call> {"name": "data__searchRecords", "arguments": {"text": "a"}}',
    "jamba": '<tool_calls>[\n    {"name": "data__searchRecords", "arguments": {"text": "a"}}\n]</tool_calls>',
    "phi": 'functools[{"name": "data__searchRecords", "arguments": {"text": "a"}}]',
    "xlam": '[{"name": "data__searchRecords", "arguments": {"text": "a"}}]',
    "cohere": (
        'Action: ```json\n[\n    {\n        "tool_name": "data__searchRecords",\n'
        '        "parameters": {"text": "a"}\n    }\n]\n```'
    ),
    "cohere with special tokens": (
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "data__searchRecords", "parameters": {}}]<|END_ACTION|>'
    ),
    "internlm": (
        'I look.<|action_start|><|plugin|>\n{"name": "data__searchRecords", "parameters": {"text": "a"}}<|action_end|>'
    ),
    "inkling": (
        '<|message_model|>data__searchRecords<|content_invoke_tool_json|>{"name": "data__searchRecords", "args": {}}'
    ),
    "apertus": '<|tools_prefix|>[{"data__searchRecords": {"text": "a"}}]<|tools_suffix|>',
    "functionary": '>>>data__searchRecords\n{"text": "a"}',
    "functionary without its mark": 'data__searchRecords\n{"text": "a"}',
    "react": 'Thought: I need the records.\nAction: data__searchRecords\nAction Input: {"text": "a"}',
    "react with a result": (
        "Thought: I look.\nAction: data__searchRecords\nAction Input: a\nObservation: 3 records\nFinal Answer: 3"
    ),
    "react as JSON": '```json\n{"action": "data__searchRecords", "action_input": {"text": "a"}}\n```',
    "react with a thought": '{"thought": "I look.", "action": "data__searchRecords", "action_input": {"text": "a"}}',
    "cline": "<data__searchRecords>\n<text>a</text>\n</data__searchRecords>",
    "LM Studio": '[TOOL_REQUEST]{"name": "data__searchRecords", "arguments": {"text": "a"}}[END_TOOL_REQUEST]',
    "openai shape": (
        '{"tool_calls": [{"id": "call_1", "type": "function", '
        '"function": {"name": "data__searchRecords", "arguments": "{\\"text\\": \\"a\\"}"}}]}'
    ),
    "openai parallel": (
        '{"tool_uses": [{"recipient_name": "functions.data__searchRecords", "parameters": {"text": "a"}}]}'
    ),
    "old openai shape": '{"function_call": {"name": "data__searchRecords", "arguments": "{}"}}',
    "with the internal name": '{"name": "data.searchRecords", "arguments": {"text": "a"}}',
    "tool and params": '{"tool": "data.searchRecords", "params": {"text": "a"}}',
    "a Python dict": "{'name': 'data__searchRecords', 'arguments': {'text': 'a'}}",
    "fenced JSON": '```json\n{"name": "data__searchRecords", "arguments": {"text": "a"}}\n```',
    "fenced JSON after prose": 'I look:\n\n```json\n{"name": "data__searchRecords", "arguments": {"text": "a"}}\n```',
    "fenced and not closed": '```json\n{"name": "data__searchRecords", "arguments": {"text": "a"}}',
    "fenced tag": '```xml\n<tool_call>\n{"name": "data__searchRecords", "arguments": {}}\n</tool_call>\n```',
    "JSON after prose": 'Let me check.\n{"name": "data__searchRecords", "arguments": {"text": "a"}}',
    "JSON after prose in one line": 'I call {"name": "data__searchRecords", "arguments": {"text": "a"}}',
    "a code span": '`data__searchRecords(text="a")`',
    "without params": '{"name": "utility__now"}',
    "params null": '{"name": "utility__now", "arguments": null}',
    "indented": '{\n  "name": "data__searchRecords",\n  "arguments": {\n    "text": "a",\n    "limit": 5\n  }\n}',
}
"""Texts that all call an offered tool."""

AMBIGUOUS = (
    "fenced JSON after prose",
    "JSON after prose",
    "JSON after prose in one line",
    "pythonic after prose",
)
"""Texts that may be examples in a response; they are accepted as examples once the server has
parsed a call by this model."""

ANSWERS = {
    "a quoted marker": "A server without a parser prints `<tool_call>` as text.",
    "a quoted call": 'It printed `<tool_call>{"name": "data__searchRecords", "arguments": {}}</tool_call>` as text.',
    "a quoted call at the end": 'It printed `{"name": "data__searchRecords", "arguments": {}}`',
    "an example in a block": (
        'Such a call looks like this:\n\n```json\n{"name": "data__searchRecords", "arguments": {"text": "a"}}\n```\n\n'
        "The server's parser turns it into a call."
    ),
    "an example with a tag in a block": (
        'Qwen writes:\n\n```\n<tool_call>\n{"name": "data__searchRecords", "arguments": {}}\n</tool_call>\n```\n'
        "and a parser reads that."
    ),
    "two examples": (
        '1. Hermes:\n```\n<tool_call>{"name": "data__searchRecords"}</tool_call>\n```\n'
        "2. Llama:\n```\n<function=data__searchRecords>{}</function>\n```\nNeither was run."
    ),
    "a quotation": '> <tool_call>{"name": "data__searchRecords", "arguments": {}}</tool_call>\n\nThat is a call.',
    "another tool": '{"name": "someone__elses", "arguments": {}}',
    "a marker without a tool": "<tool_call> and [TOOL_CALLS] are markers of calls.",
    "a marker with another tool": '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>',
    "plain prose": "I used data.searchRecords and found 12 records.",
    "prose with parentheses": "I used data.searchRecords (twice) and utility.now (once).",
    "prose with a call": 'You can find them with data.searchRecords(text="a") in a script.',
    "prose that ends with a call": 'The employee called data__searchRecords(text="a")',
    "a list of calls": '1. data.searchRecords(text="EU"): 12 records\n2. utility.now(): 10:00',
    "a plan": '1. data.searchRecords(text="EU")\n2. data.updateRecord(id=3)',
    "a table": "| tool | calls |\n|---|---|\n| data.searchRecords | 3 |\n| utility.now | 1 |",
    "HTML": "<ul><li>data.searchRecords</li><li>utility.now</li></ul>",
    "an HTML table": "<table><tr><td>data.searchRecords</td><td>3</td></tr></table>",
    "tools as JSON": '[{"name": "data.searchRecords", "description": "Finds"}, {"name": "utility.now"}]',
    "definitions": (
        '{"name": "data.searchRecords", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}'
    ),
    "a report as JSON": '{"tool": "data.searchRecords", "params": {"text": "a"}, "result": "12", "status": "ok"}',
    "figures as JSON": '{"data.searchRecords": {"calls": 3}, "utility.now": {"calls": 1}}',
    "an answer with a list of calls": (
        '{"summary": "Two calls", "calls": [{"tool": "data.searchRecords", "params": {"text": "a"}}]}'
    ),
    "a name in a record": '{"name": "Acme", "source": "data.searchRecords", "notes": {"a": 1}, "score": 5}',
    "JSON-RPC": (
        '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", '
        '"params": {"name": "data.searchRecords", "arguments": {"text": "a"}}}'
    ),
    "only the name": "data.searchRecords",
    "a name with its number": "functions.data.searchRecords:0",
    "a request to call": "call:data.searchRecords {or another tool} first",
    "a link": "See [TOOLS](https://example.com/data.searchRecords).",
    "a link with a marker's name": "See [TOOL](data.searchRecords) for more.",
    "a path": "The file is docs/data.searchRecords.md <br> and it is short.",
    "a comparison": "Use data.searchRecords if count < 5 and utility.now if count > 5.",
    "an autolink": "<https://example.com/tools/data.searchRecords>",
    "code that is no call": "```python\nrows = load()\nprint(rows)\n```",
    "empty JSON": "{}",
    "a JSON answer": '{"records": [{"name": "Acme", "region": "EU"}]}',
    "Action without a tool": "Action: call Ada tomorrow.\nAction Input: none needed.",
}
