// Which engine is shown stands behind the #: links can be passed on, and the browser's own buttons work.

const PREFIX = "#/engine/";

export const href = (id) => PREFIX + encodeURIComponent(id);

export const open = (id) => {
  location.hash = href(id);
};

/** The id of the engine that is asked for, or "". */
export function asked() {
  if (!location.hash.startsWith(PREFIX)) return "";
  try {
    return decodeURIComponent(location.hash.slice(PREFIX.length));
  } catch {
    return "";
  }
}
