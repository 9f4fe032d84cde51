/**
 * The plugin author's test kit: `import { createTestHost, contractSuite } from 'mountkeeper/testing'`.
 */
export { contractSuite } from './contract-suite.ts';
export type { ContractOptions } from './contract-suite.ts';
export { createManualClock } from './manual-clock.ts';
export type { ManualClock } from './manual-clock.ts';
export { createTestHost } from './test-host.ts';
export type { AnyPlugin, TestHost, TestHostOptions } from './test-host.ts';
export type { InjectRequest, InjectResponse } from './inject.ts';
