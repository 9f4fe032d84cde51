// @start 4
/** The unit tests of the contract with plugins, the tree and the runner of tests: one file for the runner. */
import { bringTogether } from '../runner/unit-files.ts';

await bringTogether('unit/contract');
