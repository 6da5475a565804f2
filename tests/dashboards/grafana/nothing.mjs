// Stands for what only pages and links to traces need, and nobody calls here.
export const AnnotationQueryEditor = undefined;
export const getDataSourceSrv = () => undefined;
export const usePrevious = () => undefined;
