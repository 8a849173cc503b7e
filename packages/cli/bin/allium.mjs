#!/usr/bin/env node
// Stands apart from the build, so that npm can link it before there is one.
import '../dist/main.js';
