// @start 4
/** The unit tests of the daemon, in one process. Run by the test runner as one test file. */
import { bringTogether } from '../runner/unit-files.ts';

await bringTogether('unit/daemon');
