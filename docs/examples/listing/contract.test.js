import { contractSuite } from 'mountkeeper/testing';

contractSuite(import.meta.dirname);
