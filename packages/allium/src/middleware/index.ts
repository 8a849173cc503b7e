/** Every middleware of the box. Each is also at `allium/middleware/<name>`. */
export {};
