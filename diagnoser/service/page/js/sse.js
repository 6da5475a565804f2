// Server-sent events out of a byte stream, as the HTML standard reads them.

/** feed(text) calls `event(name, data, id)` for each event that is whole, `comment()` for each comment. */
export class Parser {
  constructor(event, comment = () => {}) {
    this.event = event;
    this.comment = comment;
    this.rest = "";
    this.id = "";
    this.clear();
  }

  clear() {
    this.name = "";
    this.data = [];
  }

  feed(text) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop();
    for (const line of lines) this.line(line.endsWith("\r") ? line.slice(0, -1) : line);
  }

  line(text) {
    if (text === "") return this.dispatch();
    if (text.startsWith(":")) return this.comment();
    const at = text.indexOf(":");
    const field = at < 0 ? text : text.slice(0, at);
    const value = at < 0 ? "" : text.slice(at + 1).replace(/^ /, "");
    if (field === "event") this.name = value;
    else if (field === "data") this.data.push(value);
    else if (field === "id" && !value.includes("\0")) this.id = value;
  }

  dispatch() {
    if (this.data.length) this.event(this.name || "message", this.data.join("\n"), this.id);
    this.clear();
  }
}
