// What @grafana/data touches of a browser while it is loaded.
globalThis.window ??= globalThis;
globalThis.addEventListener ??= () => {};
globalThis.localStorage ??= { getItem: () => null, setItem: () => {}, removeItem: () => {} };
globalThis.location ??= { origin: '', pathname: '/', search: '', hash: '', href: '/' };
