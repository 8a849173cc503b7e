/** Raw JSON Schema where a Standard Schema is wanted. */
export {};
