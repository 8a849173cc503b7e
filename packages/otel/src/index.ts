/** OpenTelemetry for Allium, on `@opentelemetry/api` alone. */
export { type OtelOptions, otel } from './otel.js';
