/**
 * The plugin author's test kit: `import { createTestHost, contractSuite } from 'mountkeeper/testing'`.
 */
export { contractSuite } from './testing/contract-suite.ts';
export type { ContractOptions } from './testing/contract-suite.ts';
export { createManualClock } from './testing/manual-clock.ts';
export type { ManualClock } from './testing/manual-clock.ts';
export { createTestHost } from './testing/test-host.ts';
export type { AnyPlugin, TestHost, TestHostOptions } from './testing/test-host.ts';
export type { InjectRequest, InjectResponse } from './testing/inject.ts';
