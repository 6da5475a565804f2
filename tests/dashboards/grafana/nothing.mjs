// Stands for @grafana/runtime and react-use: what needs them (links to traces, hooks of pages) is never called.
export const getDataSourceSrv = () => undefined;
export const usePrevious = () => undefined;
