/**
 * What plugins, and helper processes of plugins, import as values and what needs nothing else of the core: `mountkeeper/sdk`.
 * A process of its own that imports `mountkeeper` instead takes 13 MB more. All of it is in `mountkeeper` as well.
 */
export { CredentialDigest, parseBasicCredentials } from './basic-credentials.ts';
export type { BasicCredentials } from './basic-credentials.ts';
export { addressKey, clientAddress, trustedProxies } from './client-address.ts';
export type { TrustedProxies } from './client-address.ts';
export { ConnectionPool } from './connection-pool.ts';
export type { ConnectionPoolOptions } from './connection-pool.ts';
export { Throttle } from './throttle.ts';
export type { Attempt, ThrottleOptions, Verdict } from './throttle.ts';
export { createClock } from '../system/clock.ts';
